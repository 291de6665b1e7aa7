#!/bin/bash
# sanitized.sh FOLDER COMMAND...: runs a command so that no sanitizer report gets lost.
#
# Every process that the command starts, however deep and wherever its stderr goes, writes its
# report to a file in FOLDER. Any such file fails the run, even when the command itself succeeded.
set -euo pipefail

readonly report_exit_code=99

folder=$(realpath -m -- "$1")
shift
mkdir -p -- "$folder"
rm -f -- "$folder"/report.*

common="exitcode=$report_exit_code:halt_on_error=1:log_path=$folder/report"
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=1:$common"
export UBSAN_OPTIONS="print_stacktrace=1:$common"
export TSAN_OPTIONS="second_deadlock_stack=1:$common"

# g++ 12's sanitizers know address spaces with at most 28 random bits; newer kernels may be set to
# more.
run=()
random_bits=$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 28)
if ((random_bits > 28)) && setarch --addr-no-randomize true 2>/dev/null; then
  run=(setarch --addr-no-randomize)
fi

code=0
"${run[@]}" "$@" || code=$?

shopt -s nullglob
reports=("$folder"/report.*)
if ((${#reports[@]} > 0)); then
  for report in "${reports[@]}"; do
    printf -- '--- sanitizer report %s\n' "$report"
    cat -- "$report"
  done
  echo "sanitized.sh: ${#reports[@]} sanitizer report(s) from '$*'" >&2
  exit "$report_exit_code"
fi
exit "$code"
