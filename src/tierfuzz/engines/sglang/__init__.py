"""The real SGLang as an engine: command line, model folder, checks of what a worker really is."""
