{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "kda",
      "sources": ["native/addon.cc", "native/kda_scalar.cc"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["kda_avx2", "kda_avx512"] }],
        ["target_arch=='arm64'", { "sources": ["native/kda_neon.cc"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "kda_avx2",
          "type": "static_library",
          "sources": ["native/kda_avx2.cc"],
          "cflags": ["<@(avx2_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx2_flags)"] }
        },
        {
          "target_name": "kda_avx512",
          "type": "static_library",
          "sources": ["native/kda_avx512.cc"],
          "cflags": ["<@(avx512_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512_flags)"] }
        }
      ]
    }]
  ]
}
