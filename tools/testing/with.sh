# shellcheck shell=bash disable=SC2154
# The tests that need more packages or more time than the others: one function for each name of `tools/test --with`, which
# sources this file. Each gets the arguments behind `--`.

pytest_in() {  # pytest_in NAME ARGUMENT ...: in that environment of tools/extra_env, with the build in front of its packages
  local python
  python="$(tools/extra_env "$1")"
  TANDEM_RUN_BY="${python}" tools/python -m pytest -c /dev/null -p no:cacheprovider --import-mode=importlib --rootdir="${root}" -rA "${@:2}"
}

with_arm64() {  # with_arm64 TARGET ...
  local targets=("$@") bin sdk run
  count=(--events "${scratch}/programs" --events "${scratch}/machine" --checks "${scratch}/checks")
  touch "${scratch}/checks"
  tools/setup --arm64
  ((${#targets[@]})) || targets=(//base/... //schema/... //transport/... //engine_adapter/{core,host,services}/... //sdk/...
    //client_py/... //tests/parity/... //program/grpc:peer_owner_test //tests/faults:every_access_test
    -//sdk/csharp/...)  # Mono is not in the root
  bazel_test programs --config=arm64 -- "${targets[@]}"
  run="env TANDEM_ARM64_ROOT=$(tools/arm64 --root) ${root}/tools/arm64 --machine"
  bazel_test machine --config=arm64 --test_tag_filters=arm64_machine --run_under="${run}" --local_test_jobs=1 -- "${targets[@]}"
  if (($# == 0)); then
    echo '=== wheel: installs it in the ARM64 root, learns CartPole-v1; a program in C with the archive'
    tools/wheels --arm64 --out "${scratch}/wheel"
    build --config=arm64 //sdk
    bin="$(tools/bazel info --config=arm64 bazel-bin)"
    tar --extract --directory "${scratch}" --file "${bin}"/sdk/tandem-sdk-*-aarch64.tar.gz
    sdk="$(echo "${scratch}"/tandem-sdk-*)"
    aarch64-linux-gnu-gcc --sysroot="$(tools/arm64 --root)" -o "${scratch}/c_engine" "${sdk}/examples/c_engine/engine.c" \
      -I"${sdk}/include" -L"${sdk}/lib" -ltandem -Wl,-rpath,"${sdk}/lib"
    tools/arm64 python3 -m venv "${scratch}/venv"
    # This machine downloads: the root has no settings for pip, and may have no certificates.
    "$(<tools/build/python_interpreter)" -m pip download --quiet --disable-pip-version-check --only-binary=:all: \
      --python-version=3.11 --platform=manylinux_2_{34,28,17}_aarch64 --platform=any --dest "${scratch}/wheels" "${scratch}"/wheel/*.whl
    tools/arm64 "${scratch}/venv/bin/pip" install --quiet --no-index --find-links="${scratch}/wheels" tandem-shm
    tools/arm64 "${scratch}/venv/bin/python" tests/wheel/learn_cart_pole.py "${scratch}/c_engine" | tee "${scratch}/checks" ||
      count+=(--failed tests/wheel/learn_cart_pole.py)
  fi
  "$(<tools/build/python_interpreter)" tools/testing/count_results.py "${count[@]}"
}

with_environments() {
  pytest_in environments tests/environments "$@"
}

with_frameworks() {
  local python
  python="$(tools/extra_env torch)"
  env --unset=TANDEM_PYTHON tools/bazel build --ui_event_filters=-info,-stdout --show_result=0 //client_py:wheel \
    //engine_adapter/conformance:suite //transport/gpu:standin_cuda.so >&2
  env --unset=PYTHONPATH "${python}" -m pip --quiet --disable-pip-version-check install --no-deps --target "${scratch}/wheel" \
    bazel-bin/client_py/wheel/*.whl
  tools/framework_packages "${scratch}"
  SB3_TESTS="${scratch}/tests" PYTHONPATH="${scratch}/wheel:${scratch}/packages" "${python}" tests/frameworks/run.py "$@"
}

with_gpu() {  # the stand-in for the CUDA driver
  build //transport/gpu:standin_cuda.so //client_py/tandem:serving/cuda_test
  TANDEM_GPU_ALL=1 bazel-bin/client_py/tandem/serving/cuda_test client_py/tandem/serving/cuda_test.py -q -k killed
  TANDEM_STANDIN_INLINE=15 TANDEM_CUDA_LIBRARY="${root}/bazel-bin/transport/gpu/standin_cuda.so" \
    tools/python -m tandem.testing.cuda_steps --steps "${1:-1000000}"
}

with_gymnasium() {
  (($# > 0)) || usage_error 'expected a clone of Gymnasium behind --, found nothing'
  local python
  python="$(tools/extra_env environments)"
  SDL_VIDEODRIVER=dummy MUJOCO_GL=egl TANDEM_RUN_BY="${python}" tools/python \
    tests/environments/gymnasiums_tests.py "$(realpath "$1")" "${scratch}" "${@:2}"
}

with_page() {
  tools/bazel test --local_test_jobs=1 --test_output=errors "$@" //tests/web:page_tests
}

with_queries() {
  local python
  python="$(tools/extra_env queries)"
  build //slow_lane/testing/queries:two_runs
  # In the runfiles, where the program finds the daemon.
  (cd bazel-bin/slow_lane/testing/queries/two_runs.runfiles/tandem && ../../two_runs "${scratch}")
  "${python}" slow_lane/testing/queries/recipes.py slow_lane/docs/telemetry_queries.md "${scratch}"
}

with_ray() {
  build //slow_lane:daemon
  TANDEM_DAEMON_PROGRAM="${root}/bazel-bin/slow_lane/daemon/tandem-daemon" \
    PYTHONPATH="${root}${PYTHONPATH:+:${PYTHONPATH}}" pytest_in ray tests/ray "$@"
}

with_torch() {
  build //sdk:tandem-sdk //sdk/csharp:CounterEngine.exe //transport/gpu:standin_cuda.so
  pytest_in torch tests/frameworks/games_test.py tests/frameworks/resume_test.py tests/frameworks/sb3_face_test.py \
    tests/frameworks/telemetry_test.py tests/frameworks/torch_test.py "$@"
}

with_wheel() {  # with_wheel PYTHON ...
  local version python pairs=()
  tools/wheels --list "$@" >"${scratch}/pythons"
  read -r _ python <"${scratch}/pythons"
  "${python}" -m venv "${scratch}/venv"
  "${scratch}/venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "${scratch}/pip" .
  tools/wheels --out "${scratch}/wheels" "$@"
  for wheel in "${scratch}"/pip/*.whl; do
    cmp "${wheel}" "${scratch}/wheels/${wheel##*/}"
    echo "ok ${wheel##*/}: the same by pip wheel"
  done
  while read -r version python; do
    pairs+=("${python}=$(echo "${scratch}"/wheels/*-cp"${version/./}"-*.whl)")
  done <"${scratch}/pythons"
  tools/python -m tests.wheel.try_wheel "${pairs[@]}"
}

with_windows() {  # with_windows ARGUMENT ...: of ninja
  local folder code=0
  source tools/build/windows.sh
  prepare_windows
  mcs -nologo -langversion:7.2 -unsafe -out:"${folder}/csharp/NamedMapEngine.exe" tests/windows/NamedMapEngine.cs
  ninja -C "${folder}" -k 0 -j 2 "$@" || code=$?
  for program in "${folder}"/tests/*.exe; do
    [[ ! -e ${program}.passed ]] || cat "${program}.passed.log"
  done | awk '/^\[  PASSED  \]/ { tests += $4; ++programs }
    END { print tests " tests of " programs " programs passed for Windows, by Wine 8" }'
  if (($# == 0)); then
    pack_windows_wheel "${folder}/wheel" >/dev/null
    rm -rf "${folder}/wheel/unpacked"
    "$(<tools/build/python_interpreter)" -m zipfile --extract "${folder}"/wheel/*.whl "${folder}/wheel/unpacked"
    rm -rf "${folder}/archive"
    mkdir "${folder}/archive"
    pack_windows_sdk "${folder}/archive"
    "$(<tools/build/python_interpreter)" -m zipfile --extract "${folder}"/archive/*.zip "${folder}/archive"
    # As its README says.
    (cd "${folder}"/archive/*/ && x86_64-w64-mingw32-gcc -static -o engine.exe examples/c_engine/engine.c -Iinclude lib/libtandem.dll.a &&
      cp lib/libtandem-1.dll .)
    tools/python tests/windows/trajectory.py "${folder}/linux.npy"
    # Without test_render_sync_vector: there are no images. Python for Windows wants pipes.
    tools/windows "${folder}/python/python.exe" -B -m pytest -c NUL -p no:cacheprovider --rootdir=tests -rA \
      tests/windows/{sdk_archive,wheel}_test.py tests/parity/gymnasiums_tests_test.py -k 'not render' </dev/null 2>&1 | cat || code=1
  fi
  return "${code}"
}
