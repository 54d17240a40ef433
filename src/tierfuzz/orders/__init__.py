"""Event orders: which streams a worker may send, and what a consumer has to make of them."""
