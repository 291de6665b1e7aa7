# Debian's packages. spdlog, fmt and Boost.JSON are compiled once, from their headers, in small targets of their own:
# Debian has no archives of the first two, and header-only use costs seconds a file.

set(Protobuf_USE_STATIC_LIBS ${MUSTER_STATIC})
set(OPENSSL_USE_STATIC_LIBS ${MUSTER_STATIC})
set(ZLIB_USE_STATIC_LIBS ${MUSTER_STATIC})
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)  # CMake's own module: Debian's package has no configuration.
find_package(Boost 1.81 CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(Catch2 2 CONFIG REQUIRED)
find_path(MUSTER_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
find_path(MUSTER_SPDLOG_INCLUDE spdlog/spdlog.h REQUIRED)

add_library(muster_asio INTERFACE)
target_link_libraries(muster_asio INTERFACE Boost::headers Threads::Threads)
target_compile_definitions(muster_asio INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE)

add_library(muster_spdlog STATIC cmake/third_party/spdlog.cpp)
target_include_directories(muster_spdlog SYSTEM PUBLIC ${MUSTER_SPDLOG_INCLUDE})
target_compile_definitions(muster_spdlog PUBLIC SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_link_libraries(muster_spdlog PUBLIC Threads::Threads)

add_library(muster_json STATIC cmake/third_party/json.cpp)
target_link_libraries(muster_json PUBLIC Boost::headers)

include(cmake/grpc.cmake)
