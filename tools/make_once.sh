# shellcheck shell=bash disable=SC2154
# For commands that make a folder in the user's cache once, and may be interrupted; sourced behind command.sh.

cache="${XDG_CACHE_HOME:-${HOME:-}/.cache}/tandem"
[[ ${cache} == /* ]] || fail 'expected a home folder, found that HOME is not set.' 'set HOME or XDG_CACHE_HOME'

made_folder() { echo "${cache}/$1-${2:0:12}"; }  # made_folder NAME KEY: where make_once makes it
arm64_key() { cat "${root}"/tools/{arm64_packages.txt,testing/arm64_init} | sha256sum; }  # of the ARM64 root

# make_once NAME KEY MEGABYTES NEXT FUNCTION: FUNCTION makes ${made}, the folder of that NAME and KEY, unless it is there.
# While one process makes it, others wait. NEXT: the command that begins again.
make_once() {
  local name="$1" needed_mb="$3" free_mb other
  next="$4"  # global: bash has left this function when a trap runs
  made="$(made_folder "${name}" "$2")"
  [[ ! -e ${made}/finished ]] || return 0
  mkdir -p "${cache}"
  exec {guard}>"${cache}/${name}.guard"
  if ! flock --nonblock "${guard}"; then
    echo "tandem: another ${next} is at work; waiting for it" >&2
    flock "${guard}"
  fi
  [[ ! -e ${made}/finished ]] || return 0

  rm -rf --one-file-system "${made}"
  free_mb="$(df --output=avail --block-size=1MB "${cache}" | tr -dc '0-9')"
  ((free_mb >= needed_mb)) || fail "expected ${needed_mb} MB free in ${cache}, found ${free_mb} MB." \
    'make room, or set XDG_CACHE_HOME to a folder that has it'
  # shellcheck disable=SC2317
  end() {
    local code=$?
    jobs -p | xargs --no-run-if-empty kill 2>/dev/null || true
    printf '\ntandem: not finished; removing what is there. Next: %s begins again.\n' "${next}" >&2
    rm -rf --one-file-system "${made}"
    exit "${code}"
  }
  trap end EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir "${made}"
  "$5"
  touch "${made}/finished"
  trap - EXIT INT TERM
  exec {guard}>&-
  for other in "${cache}/${name}"-*; do
    [[ ${other} == "${made}" ]] || echo "tandem: unless another clone uses it, remove the older one: rm -r ${other}" >&2
  done
}
