//! The shell round the engine.
