# Flags that every target of ours shares: warnings (muster_warnings), sanitizers, the linker, ccache.

find_program(MUSTER_CCACHE ccache)
if(MUSTER_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MUSTER_CCACHE})
endif()

find_program(MUSTER_MOLD mold)
if(MUSTER_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

if(MUSTER_SANITIZE)
  add_compile_options(-fsanitize=${MUSTER_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MUSTER_SANITIZE})
endif()

# Linked PRIVATE by our own targets only, so that nobody else's code is judged by it.
add_library(muster_warnings INTERFACE)
target_compile_options(muster_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Wno-missing-field-initializers -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 at -O3 sees an overlap in `"literal" + string`, where none can be (GCC bug 105651).
  target_compile_options(muster_warnings INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # MUSTER_ASSERT(!"what can't be") is meant.
  target_compile_options(muster_warnings INTERFACE -Wno-string-conversion)
endif()
if(MUSTER_SANITIZE STREQUAL "thread")
  # Boost's headers use fences, which g++ says TSan does not model.
  target_compile_options(muster_warnings INTERFACE -Wno-tsan)
endif()

# What an installed program is linked with: one file that needs only libc.
add_library(muster_program INTERFACE)
if(MUSTER_STATIC)
  # Not position independent: fewer relocations, so fewer page faults at start.
  target_compile_options(muster_program INTERFACE -fno-pie)
  target_link_options(muster_program INTERFACE -static-libstdc++ -static-libgcc -no-pie -Wl,--gc-sections)
endif()
