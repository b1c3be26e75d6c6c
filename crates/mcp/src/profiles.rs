//! Other names for the same tools: those that a model was trained with. Thin faces of one engine.

pub(crate) mod claude;
pub(crate) mod codex;
pub(crate) mod gemini;
pub(crate) mod plain;
