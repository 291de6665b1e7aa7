# For the tests here and the fuzz target.
set(MUSTER_STORE_ORACLE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/reference_codec.cpp
  ${CMAKE_CURRENT_LIST_DIR}/store_oracle.cpp
  ${PROJECT_SOURCE_DIR}/tests/rendezvous/core/kv_model.cpp)
# What a planted fault is compiled into.
set(MUSTER_STORE_PURE_SOURCES
  ${PROJECT_SOURCE_DIR}/rendezvous/core/kv_store.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/core/kv_table.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/core/kv_waits.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/store/decoder.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/store/encode.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/store/interpreter.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/store/opcodes.cpp
  ${PROJECT_SOURCE_DIR}/rendezvous/store/request_reader.cpp)
