"""From predicates to machine code: programs, code generation, native modules, their cache on disk."""
