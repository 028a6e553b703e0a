{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "uring",
      "sources": ["native/addon.cc", "native/batch.cc", "native/block_queue.cc", "native/buffer_table.cc", "native/files.cc", "native/loop_signal.cc",
                  "native/pread_backend.cc", "native/reader.cc", "native/region.cc", "native/ring.cc",
                  "native/uring_backend.cc"]
    }
  ]
}
