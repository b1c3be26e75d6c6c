//! What a terminal's bytes mean.
