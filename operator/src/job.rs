//! The Job controller.
