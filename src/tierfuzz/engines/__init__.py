"""What one engine does its own way, one module an engine behind one protocol."""
