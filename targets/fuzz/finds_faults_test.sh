#!/usr/bin/env bash
# The alarm must ring through libFuzzer itself: every fuzz target, from an empty corpus, finds a planted fault that it
# can see, and finds nothing where nothing is planted. Builds the fuzz preset, as `./run fuzz` does.
#   finds_faults_test.sh                            the test
#   finds_faults_test.sh --every-fault [SECONDS]    a measurement: from the seeds, each target has SECONDS (default 2)
#                                                   for each planted fault; a table of who found what, and how fast
# Exit codes: 0 all found, 1 not, 77 skipped because no clang here has libFuzzer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly limit=30 control=3 skipped=77

# fuzz target, and the fault that it must find
readonly plan=(
  "qparams scale_underflows_to_zero"
  "quantize multiplies_by_reciprocal"
  "dequantize subtracts_after_scaling"
  "requantize requantizes_with_one_rounding"
  "round_trip never_uses_lowest_code"
  "blockwise reads_only_the_first_scale"
  "isa_agreement other_isa_rounds_half_away"
)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

has_libfuzzer() { # COMPILER
  command -v "$1" >/dev/null || return 1
  printf 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n' >"$work/try.cpp"
  "$1" -fsanitize=fuzzer,address,undefined "$work/try.cpp" -o "$work/try" 2>/dev/null
}

find_clang() { # the version that the preset names, then the newest
  local name
  for name in clang++-19 $(compgen -c clang++- | sort -uVr) clang++; do
    ! has_libfuzzer "$name" || { echo "$name"; return 0; }
  done
  return 1
}

failures=0
fail() {
  printf 'FAILED: %s\n' "$*"
  failures=$((failures + 1))
}

fuzz() { # NAME SECONDS [LIBFUZZER ARGUMENT...]: from an empty corpus; the log and the findings go to $work/NAME
  local name=$1 seconds=$2 corpus=$work/$1/corpus
  shift 2
  rm -rf "${work:?}/$name"
  mkdir -p "$corpus"
  ASSAY_FINDINGS_DIR=$work/$name/findings "build/fuzz/$name" -seed=1 "-max_total_time=$seconds" -timeout=25 \
    "-artifact_prefix=$work/$name/" "$corpus" "$@" >"$work/$name/log" 2>&1 </dev/null
}

must_find() { # NAME FAULT
  local name=fuzz_$1 fault=$2 started=$SECONDS cases
  if ASSAY_TARGET=fault:$fault fuzz "$name" "$limit"; then
    fail "$name did not find $fault in $limit s: $(tail -n 1 "$work/$name/log")"
    return 0
  fi
  cases=("$work/$name/findings/fault_${fault}."*.json)
  if ! grep -q "^finding: fault:$fault/" "$work/$name/log" || [ ! -s "${cases[0]}" ]; then
    fail "$name stopped without a case that names $fault"
    tail -n 30 "$work/$name/log"
    return 0
  fi
  printf '%-20s found %-28s in %2d s: %s\n' "$name" "$fault" $((SECONDS - started)) \
    "$(sed -n 's/^finding: //p' "$work/$name/log")"
}

must_find_nothing() { # NAME
  local name=fuzz_$1
  if ! fuzz "$name" "$control"; then
    fail "$name found something where nothing is planted"
    tail -n 30 "$work/$name/log"
    return 0
  fi
  printf '%-20s found nothing where nothing is planted\n' "$name"
}

# Text that is a case does not come out of nothing in seconds, so this one starts from the seeds.
must_find_in_printer() {
  local started=$SECONDS
  if fuzz planted_case_json "$limit" -dict=targets/fuzz/case_json.dict corpus/seeds/case_json; then
    fail "planted_case_json was not found out in $limit s"
  elif ! grep -q '^finding: case_json/forgetful_does_not_parse_back' "$work/planted_case_json/log"; then
    fail "planted_case_json stopped for another reason"
    tail -n 30 "$work/planted_case_json/log"
  else
    printf '%-20s found %-28s in %2d s\n' fuzz_case_json "the forgetful printer" $((SECONDS - started))
  fi
}

# One line a fault: how many of the targets found it, and the seconds of each, starting the program included.
measure_every_fault() { # SECONDS
  local seconds=$1 faults fault row name started spent found cells best slowest=0 slow=
  mapfile -t faults < <(./run list faults --json | sed -nE 's/.*"name": ?"([a-z0-9_]+)".*/\1/p')
  [ "${#faults[@]}" -gt 0 ] || { fail "assay lists no faults"; return 0; }
  printf '%-36s %5s' fault found
  for row in "${plan[@]}"; do printf ' %13s' "${row%% *}"; done
  printf '\n'
  for fault in "${faults[@]}"; do
    found=0 cells= best=
    for row in "${plan[@]}"; do
      name=${row%% *} started=${EPOCHREALTIME/./}
      if ASSAY_TARGET=fault:$fault fuzz "fuzz_$name" "$seconds" "corpus/seeds/$name"; then
        cells+=$(printf ' %13s' -)
        continue
      fi
      spent=$(((${EPOCHREALTIME/./} - started) / 1000))
      if ! grep -q "^finding: fault:$fault/" "$work/fuzz_$name/log"; then
        fail "fuzz_$name stopped under $fault for another reason: $(tail -n 1 "$work/fuzz_$name/log")"
      fi
      found=$((found + 1))
      cells+=$(printf ' %9d.%03d' $((spent / 1000)) $((spent % 1000)))
      if [ -z "$best" ] || [ "$spent" -lt "$best" ]; then best=$spent; fi
    done
    printf '%-36s %5d%s\n' "$fault" "$found" "$cells"
    if [ "$found" -eq 0 ]; then fail "no target found $fault in $seconds s"; continue; fi
    if [ "$best" -gt "$slowest" ]; then slowest=$best slow=$fault; fi
  done
  printf '%d faults, %d not found; the one that took its quickest target longest: %s, %d ms\n' "${#faults[@]}" "$failures" \
    "$slow" "$slowest"
}

clang=$(find_clang) || {
  echo "SKIPPED: no clang with libFuzzer here (clang-19 and libclang-rt-19-dev have it)"
  exit "$skipped"
}
cmake --preset fuzz "-DCMAKE_CXX_COMPILER=$clang"
cmake --build --preset fuzz --target fuzz_targets

if [ "${1:-}" = --every-fault ]; then
  measure_every_fault "${2:-2}"
  [ "$failures" -eq 0 ]
  exit
fi
for row in "${plan[@]}"; do
  read -r name fault <<<"$row"
  must_find "$name" "$fault"
  must_find_nothing "$name"
done
must_find_in_printer
must_find_nothing case_json
[ "$failures" -eq 0 ]
