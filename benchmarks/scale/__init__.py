"""How large data may be: time and memory with millions of entries, in blocks and on clusters."""
