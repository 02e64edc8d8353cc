//! Paid work that control performs and the relay bills: searches and videos.
//!
//! [`videos`] reads the forms of clients with [`video_form`]. [`searches`] settles both kinds.

pub(crate) mod searches;
pub(crate) mod video_form;
pub(crate) mod videos;
