# gRPC, for the control service and musterctl: never for the attendance, the store or the agent. Its build without
# TLS does: a connection's bytes come to it in the clear, whatever lies around them.
#
# Under ThreadSanitizer programs that link gRPC are built, but their tests are not registered (MUSTER_TEST_GRPC):
# Debian's libraries are not instrumented, so that every echo gives dozens of reports, and what silences them silences
# our own races too. What decides is kept free of gRPC, and is tested there.

find_package(ZLIB REQUIRED)
find_package(gRPC 1.51 CONFIG REQUIRED)

set(MUSTER_TEST_GRPC ON)
if(MUSTER_SANITIZE STREQUAL "thread")
  set(MUSTER_TEST_GRPC OFF)
endif()

if(MUSTER_STATIC)
  # gRPC's configuration names shared libraries; Debian has the archives beside them.
  get_directory_property(imported IMPORTED_TARGETS)
  foreach(target IN LISTS imported)
    get_target_property(type ${target} TYPE)
    if(NOT type MATCHES "^(SHARED|UNKNOWN|STATIC)_LIBRARY$")
      continue()
    endif()
    foreach(property IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
      get_target_property(location ${target} ${property})
      string(REGEX REPLACE "\\.so(\\.[0-9.]+)?$" ".a" archive "${location}")
      if(location AND NOT archive STREQUAL location AND EXISTS ${archive})
        set_target_properties(${target} PROPERTIES ${property} ${archive})
      endif()
    endforeach()
  endforeach()
  # Its configuration ends in a bare -lre2, which takes the shared one.
  find_library(MUSTER_RE2_ARCHIVE libre2.a REQUIRED)
  set_target_properties(re2::re2 PROPERTIES INTERFACE_LINK_LIBRARIES ${MUSTER_RE2_ARCHIVE})
endif()

add_library(muster_grpc INTERFACE)
target_link_libraries(muster_grpc INTERFACE gRPC::grpc++_unsecure)
