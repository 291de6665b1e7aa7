#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <catch2/catch.hpp>

namespace muster::launcher {

/// An empty folder that goes with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "launcher_test_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Its path as text.
  [[nodiscard]] std::string at(const std::string& name) const { return (path_ / name).string(); }

  /// A file of mode 0644, in folders that are made; its path.
  std::string write(const std::string& name, std::string_view contents) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << contents;
    std::filesystem::permissions(file, std::filesystem::perms(0644));
    return file.string();
  }

  /// The same of mode 0755.
  std::string write_program(const std::string& name, std::string_view contents) const {
    auto file = write(name, contents);
    std::filesystem::permissions(file, std::filesystem::perms(0755));
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace muster::launcher
