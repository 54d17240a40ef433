"""The real SGLang on a CPU: an environment of its own, and a plugin that stands in for a few GPU kernels."""
