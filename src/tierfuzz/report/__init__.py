"""What people see of a run: progress while it lasts, tables and JSON at its end."""
