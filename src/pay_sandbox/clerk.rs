//! The one thread that reads and changes the book.
//!
//! Questions that arrive together share one write to the disk, and none is answered before what its answer says is
//! durable: not only the change it made, but also the changes it saw.

use std::{io, thread};

use tokio::sync::{mpsc, oneshot};

use super::{book::Book, journal::Journal};

/// Questions that may wait before callers are held back.
const QUEUE: usize = 1024;
/// Most questions that share one write.
const BATCH: usize = 256;

/// Answers once the book is on disk; dropped, the asker learns that it is not.
type Answer = Box<dyn FnOnce() + Send>;
type Question = Box<dyn FnOnce(&mut Book) -> Answer + Send>;

/// Access to the book. Clones reach the same one.
#[derive(Debug, Clone)]
pub(super) struct Clerk(mpsc::Sender<Question>);

/// The journal could not be written, so nothing can be promised any more.
#[derive(Debug, Clone, Copy)]
pub(super) struct JournalLost;

impl Clerk {
    /// Starts the thread. It ends when the last clone is gone, or when the journal cannot be written.
    pub(super) fn start(book: Book, journal: Option<Journal>) -> io::Result<Self> {
        let (questions, queue) = mpsc::channel(QUEUE);
        thread::Builder::new().name("payment-book".to_owned()).spawn(move || serve(book, journal, queue))?;
        Ok(Self(questions))
    }

    /// Puts one question to the book; what it changed and saw is durable when the answer comes.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Book) -> T + Send + 'static,
    ) -> Result<T, JournalLost> {
        let (answer, answered) = oneshot::channel();
        let question: Question = Box::new(move |book| {
            let value = question(book);
            Box::new(move || {
                // The asker may have gone away; the change stands.
                let _gone = answer.send(value);
            })
        });
        self.0.send(question).await.map_err(|_| JournalLost)?;
        answered.await.map_err(|_| JournalLost)
    }
}

fn serve(mut book: Book, mut journal: Option<Journal>, mut queue: mpsc::Receiver<Question>) {
    while let Some(question) = queue.blocking_recv() {
        let mut answers = vec![question(&mut book)];
        while answers.len() < BATCH
            && let Ok(question) = queue.try_recv()
        {
            answers.push(question(&mut book));
        }
        let entries = book.take_unwritten();
        if let Some(Err(error)) = journal.as_mut().map(|journal| journal.append(&entries)) {
            tracing::error!(%error, "the payment journal cannot be written: every call is refused until a restart");
            return;
        }
        for answer in answers {
            answer();
        }
    }
}
