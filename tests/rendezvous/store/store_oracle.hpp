#pragma once

#include "rendezvous/store/interpreter.hpp"
#include "tests/rendezvous/core/kv_model.hpp"
#include "tests/rendezvous/store/reference_codec.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// Several clients talk to the store's decoder and core, and to the reference codec and the model;
/// what they get back must be the same, byte for byte. Used by the fuzz target, and by a test with
/// random talk.
class StoreOracle {
 public:
  static constexpr std::size_t kClients = 3;

  /// The limits are small, so that they are met.
  explicit StoreOracle(std::optional<muster::store::Dialect> dialect);

  /// The bytes arrive in one piece. The answer is what differs; empty: nothing.
  [[nodiscard]] std::string arrive(std::size_t client, std::string_view bytes);
  /// Time passes: what is Undecided is settled.
  [[nodiscard]] std::string settle(std::size_t client);
  /// The client leaves, another takes its place.
  [[nodiscard]] std::string leave(std::size_t client);

 private:
  struct Client {
    explicit Client(const muster::store::Decoder::Rules& rules);

    muster::store::Decoder decoder;
    std::string in;   ///< Not consumed yet.
    std::string out;  ///< All that it got.
    bool is_refused = false;
    bool is_undecided = false;

    ReferenceCodec reference;
    std::string reference_in;
    std::string reference_out;
    bool reference_is_refused = false;
    bool reference_is_undecided = false;
  };

  void run_store(std::size_t number);
  void run_reference(std::size_t number);
  [[nodiscard]] std::string compare() const;

  muster::store::Interpreter store_;
  KvModel model_;
  std::array<std::unique_ptr<Client>, kClients> clients_;
};
