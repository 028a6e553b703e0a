{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "mxfp4",
      "sources": ["native/addon.cc", "native/format.cc", "native/matmul_scalar.cc"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["mxfp4_avx2", "mxfp4_avx512", "mxfp4_avx512vnni"] }],
        ["target_arch=='arm64'", { "sources": ["native/matmul_neon.cc"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "mxfp4_avx2",
          "type": "static_library",
          "sources": ["native/matmul_avx2.cc"],
          "cflags": ["<@(avx2_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx2_flags)"] }
        },
        {
          "target_name": "mxfp4_avx512",
          "type": "static_library",
          "sources": ["native/matmul_avx512.cc"],
          "cflags": ["<@(avx512_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512_flags)"] }
        },
        {
          "target_name": "mxfp4_avx512vnni",
          "type": "static_library",
          "sources": ["native/int8_avx512vnni.cc"],
          "cflags": ["<@(avx512vnni_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512vnni_flags)"] }
        }
      ]
    }]
  ]
}
