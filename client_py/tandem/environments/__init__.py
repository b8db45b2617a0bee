"""An engine's environments for Gymnasium: `make_vec`, `SharedMemoryVectorEnv`, `SharedMemoryEnv`."""
