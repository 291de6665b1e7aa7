#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::launcher {

/// As much of a script as the kernel looks at for its `#!` line.
constexpr std::size_t kShebangLimit = 256;

/// What the `#!` line of a script asks for.
struct Shebang {
  std::string interpreter;  ///< As the kernel would execute it, less a carriage return.
  std::string through_env;  ///< Of `/usr/bin/env python3`: python3; else empty.
  bool carriage_return =
      false;  ///< Of Windows line ends: the kernel takes it for a part of the name.

  /// Whether it is python, python3, python3.11...; at the end of a path or through env.
  [[nodiscard]] bool names_python() const;
};

/// From the first bytes of a file; nullopt where there is no `#!` line or it names nothing.
[[nodiscard]] std::optional<Shebang> parse_shebang(std::string_view start);

/// Whether a program of this name is a Python: `python`, `/usr/bin/python3.11`.
[[nodiscard]] bool is_python_name(std::string_view path);

}  // namespace muster::launcher
