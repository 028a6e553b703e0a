{
  "includes": ["../native-kit/native.gypi"],
  "targets": [
    {
      "target_name": "task_pool",
      "sources": ["native/addon.cc", "native/pool.cc"]
    }
  ]
}
