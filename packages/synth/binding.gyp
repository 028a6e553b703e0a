{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "synth",
      "sources": ["native/addon.cc", "native/fill_scalar.cc"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["synth_avx2", "synth_avx512"] }],
        ["target_arch=='arm64'", { "sources": ["native/fill_neon.cc"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "synth_avx2",
          "type": "static_library",
          "sources": ["native/fill_avx2.cc"],
          "cflags": ["<@(avx2_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx2_flags)"] }
        },
        {
          "target_name": "synth_avx512",
          "type": "static_library",
          "sources": ["native/fill_avx512.cc"],
          "cflags": ["<@(avx512_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512_flags)"] }
        }
      ]
    }]
  ]
}
