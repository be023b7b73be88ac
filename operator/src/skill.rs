//! The Skill controller.
