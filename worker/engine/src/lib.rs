//! The pure engine of a conversation.
