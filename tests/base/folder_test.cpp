#include "base/posix/folder.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST_CASE("a folder that nobody holds is removed, with what is in it", "[posix][folder]") {
  const auto parent = posix::make_unique_folder("/tmp/muster-folder-test-").value();
  const auto make = [&parent](const std::string& name) {
    fs::create_directory(parent + "/" + name);
    std::ofstream(parent + "/" + name + "/file") << "x";
    return parent + "/" + name;
  };
  const auto held = make("job-held");
  const auto unheld = make("job-unheld");
  const auto other = make("other");
  fs::create_symlink(other, parent + "/job-link");
  const auto hold = posix::hold_folder(held);
  REQUIRE(hold);
  CHECK_FALSE(posix::hold_folder(held));

  posix::remove_unheld(parent, "job-");  // It is too young: its maker may be about to hold it.
  CHECK(fs::exists(unheld));
  posix::remove_unheld(parent, "job-", 0s);
  CHECK_FALSE(fs::exists(unheld));
  CHECK(fs::exists(held + "/file"));
  CHECK(fs::exists(other + "/file"));
  CHECK(fs::is_symlink(parent + "/job-link"));
  fs::remove_all(parent);
}
