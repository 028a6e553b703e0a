# The only compiler flags of the project (docs/NUMERICS.md rests on them). An addon's binding.gyp includes this file.
{
  "variables": {
    "variables": { "emulate_avx512%": "<!(node -p \"process.env.K3_EMULATE_AVX512 ? 1 : 0\")" },
    "emulate_avx512%": "<(emulate_avx512)",
    "avx2_flags": ["-mavx2", "-mfma"],
    "conditions": [
      ["emulate_avx512==1", { "avx512_flags": ["-mavx2", "-mfma"], "avx512vnni_flags": ["-mavx2", "-mfma"] }, {
        "avx512_flags": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx2", "-mfma"],
        "avx512vnni_flags": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mavx2", "-mfma"]
      }]
    ]
  },
  "target_defaults": {
    # node-addon-api is headers alone. Its gyp target would do the same, but gyp writes that target's makefile to one place
    # for all packages, and two of them building at once overwrite each other's.
    "include_dirs": ["<(module_root_dir)/../native-kit/include", "<!(node -p \"require('node-addon-api').include_dir\")"],
    # the second: a worker may be terminated inside a native call, and an exception that cannot be thrown any more is no
    # reason to end the process
    "defines": ["NAPI_VERSION=9", "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS",
                "NODE_ADDON_API_DISABLE_CPP_EXCEPTIONS"],
    "cflags": ["-fvisibility=hidden", "-ffunction-sections", "-fdata-sections", "-Wall", "-Wextra", "-O3",
               "-ffp-contract=off", "-fno-math-errno"],
    "cflags_cc": ["-std=c++17", "-fno-gnu-unique", "-fno-exceptions"],
    "xcode_settings": {
      "MACOSX_DEPLOYMENT_TARGET": "11.0",
      "GCC_SYMBOLS_PRIVATE_EXTERN": "YES",
      "GCC_ENABLE_CPP_EXCEPTIONS": "NO",
      "CLANG_CXX_LANGUAGE_STANDARD": "c++17",
      "OTHER_CFLAGS": ["-O3", "-ffp-contract=off", "-fno-math-errno"]
    },
    "conditions": [
      ["emulate_avx512==1", { "defines": ["K3_EMULATE_AVX512"] }],
      ["OS=='linux'", {
        # no libstdc++ or libgcc_s at run time, nothing exported but the Node-API entry points
        "ldflags": ["-static-libstdc++", "-static-libgcc", "-Wl,--gc-sections", "-Wl,-z,relro,-z,now",
                    "-Wl,--version-script=<(module_root_dir)/../native-kit/exports.map"]
      }]
    ]
  }
}
