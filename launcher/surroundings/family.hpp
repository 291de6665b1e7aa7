#pragma once

#include "launcher/surroundings/surroundings.hpp"

#include <string_view>

/// The families of starters, and what all of them need to read their variables.
namespace muster::launcher {

/// Reads variables. What makes no sense is remembered, and reads as if it were unset.
class Reader {
 public:
  /// Both outlive it.
  Reader(const Environment& environment, const ReadFile& read_file)
      : environment_(environment), read_file_(read_file) {}

  [[nodiscard]] const Environment& environment() const { return environment_; }
  [[nodiscard]] bool has(std::string_view variable) const;

  /// nullopt where the variable is unset or empty.
  [[nodiscard]] std::optional<Told<std::string>> text(std::string_view variable) const;
  /// From 0, of 32 bits.
  [[nodiscard]] std::optional<Told<std::uint32_t>> number(std::string_view variable);
  [[nodiscard]] std::optional<Told<std::uint16_t>> port(std::string_view variable);
  /// As Slurm writes them; empty where the variable is.
  [[nodiscard]] std::vector<std::string> node_list(std::string_view variable);
  [[nodiscard]] std::vector<std::uint32_t> counts(std::string_view variable);

  /// The first machine of the allocation that we are in, by whichever scheduler.
  [[nodiscard]] std::optional<Told<std::string>> first_allocated_host();
  /// Empty where it can't be read.
  [[nodiscard]] std::string file(const std::string& path) const;

  void wrong(std::string message);
  /// `found`, unless something was wrong with a variable or with what they say together.
  [[nodiscard]] Result<Surroundings> checked(Surroundings found);

 private:
  const Environment& environment_;
  const ReadFile& read_file_;
  std::optional<Error> error_;
};

/// Each fills what it knows; nullopt: it is not its own.
[[nodiscard]] std::optional<Surroundings> process_of_mpi(Reader& reader);
[[nodiscard]] std::optional<Surroundings> task_of_slurm(Reader& reader);
[[nodiscard]] std::optional<Surroundings> node_of_cluster(Reader& reader);
[[nodiscard]] std::optional<Surroundings> host_of_list(Reader& reader);
[[nodiscard]] std::optional<Surroundings> pod_of_job(Reader& reader);

}  // namespace muster::launcher
