{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "vector_ops",
      "sources": ["native/addon.cc", "native/vector_ops_scalar.cc"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["vector_ops_avx2", "vector_ops_avx512"] }],
        ["target_arch=='arm64'", { "sources": ["native/vector_ops_neon.cc"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "vector_ops_avx2",
          "type": "static_library",
          "sources": ["native/vector_ops_avx2.cc"],
          "cflags": ["<@(avx2_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx2_flags)"] }
        },
        {
          "target_name": "vector_ops_avx512",
          "type": "static_library",
          "sources": ["native/vector_ops_avx512.cc"],
          "cflags": ["<@(avx512_flags)"],
          "xcode_settings": { "OTHER_CFLAGS": ["<@(avx512_flags)"] }
        }
      ]
    }]
  ]
}
