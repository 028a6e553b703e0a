{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "bf16_linear",
      "sources": ["native/addon.cc", "native/matvec_scalar.cc"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["bf16_linear_avx2", "bf16_linear_avx512"] }],
        ["target_arch=='arm64'", { "sources": ["native/matvec_neon.cc"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "bf16_linear_avx2",
          "type": "static_library",
          "sources": ["native/matvec_avx2.cc"],
          "cflags": ["<@(avx2_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx2_flags)"] }
        },
        {
          "target_name": "bf16_linear_avx512",
          "type": "static_library",
          "sources": ["native/matvec_avx512.cc"],
          "cflags": ["<@(avx512_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512_flags)"] }
        }
      ]
    }]
  ]
}
