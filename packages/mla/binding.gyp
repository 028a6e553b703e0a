{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "mla",
      "sources": ["native/addon.cc", "native/mla_scalar.cc"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["mla_avx2", "mla_avx512"] }],
        ["target_arch=='arm64'", { "sources": ["native/mla_neon.cc"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "mla_avx2",
          "type": "static_library",
          "sources": ["native/mla_avx2.cc"],
          "cflags": ["<@(avx2_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx2_flags)"] }
        },
        {
          "target_name": "mla_avx512",
          "type": "static_library",
          "sources": ["native/mla_avx512.cc"],
          "cflags": ["<@(avx512_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512_flags)"] }
        }
      ]
    }]
  ]
}
