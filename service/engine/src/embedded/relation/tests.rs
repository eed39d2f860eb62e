//! Relations resolved and run, from hand-built messages.
