//! Repositories of skills: `bloomery import DIR`, `bloomery new` and `bloomery export`.

pub mod create;
pub mod export;
pub mod import;

mod files;
mod locate;
mod template;
mod walk;
