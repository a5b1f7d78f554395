//! Plays an opening against a running system and judges it.
