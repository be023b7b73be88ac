//! The Model controller.
