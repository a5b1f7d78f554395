//! `stanchion rehearse`.
