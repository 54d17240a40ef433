"""Make what fails smaller: delta debugging with a memory and a budget, and passes over programs."""
