"""The simulated worker: a real process with the engine's HTTP, metrics and event sockets."""
