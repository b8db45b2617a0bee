# shellcheck shell=bash
# Begins each command of this folder, which sources it with its help as standard input: strict mode, the top of the source
# tree as `root`, and --help, which prints the help and ends the command.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

if [[ ${1:-} == --help ]]; then
  cat
  exit
fi

expect_no_arguments() {  # expect_no_arguments "$@"
  (($# == 0)) || usage_error "expected no arguments, found $*"
}

usage_error() {  # usage_error TEXT
  printf 'tandem: %s\nNext: tools/%s --help\n' "$1" "${0##*/}" >&2
  exit 2
}

fail() {  # fail TEXT NEXT
  printf 'tandem: %s\nNext: %s\n' "$1" "$2" >&2
  exit 1
}

build() {  # build TARGET ...: shows errors and, on a terminal, progress; on standard error, apart from the command's output
  local quiet=('--ui_event_filters=-info,-stdout' --show_result=0)
  [[ -t 2 ]] || quiet+=(--noshow_progress)
  (cd "${root}" && tools/bazel build "${quiet[@]}" "$@") >&2
}

make_scratch() {  # a temporary folder, ${scratch}, which is removed when the command ends
  scratch="$(mktemp -d)"
  trap 'rm -rf "${scratch}"' EXIT
}
