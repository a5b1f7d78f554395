//! The buyers of one race: when they come, and how each one fared.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Barrier, mpsc},
    task::JoinSet,
    time::{Instant, sleep_until, timeout_at},
};

use super::{Arrivals, Outcome, Plan, RaceError, Sell};

/// How one attempt went.
#[derive(Debug)]
pub struct Attempt {
    /// When the buyer came.
    pub began: Instant,
    /// How long the buyer waited for the answer, a wait for a connection included.
    pub took: Duration,
    /// The answer.
    pub outcome: Result<Outcome, RaceError>,
}

/// Lets all buyers at `seller`, and comes back with every attempt: those that have no answer by the deadline too.
pub async fn race(plan: &Plan, seller: Arc<dyn Sell>) -> Vec<Attempt> {
    let (tell, mut told) = mpsc::channel(plan.attempts as usize);
    let mut tasks = JoinSet::new();
    let crowd = Arc::new(Crowd { plan: plan.clone(), seller, tell, next: AtomicU32::new(0) });
    let began = Instant::now();
    match plan.arrivals {
        Arrivals::Burst => {
            let barrier = Arc::new(Barrier::new(plan.attempts as usize));
            for number in 0..plan.attempts {
                let (crowd, barrier) = (Arc::clone(&crowd), Arc::clone(&barrier));
                tasks.spawn(async move {
                    barrier.wait().await;
                    crowd.attempt(number).await;
                });
            }
        }
        Arrivals::Ramp(span) => {
            for number in 0..plan.attempts {
                let (crowd, due) =
                    (Arc::clone(&crowd), began + span.mul_f64(f64::from(number) / f64::from(plan.attempts)));
                tasks.spawn(async move {
                    sleep_until(due).await;
                    crowd.attempt(number).await;
                });
            }
        }
        Arrivals::Clients(clients) => {
            for _ in 0..clients {
                let crowd = Arc::clone(&crowd);
                tasks.spawn(async move { crowd.attempt_until_none_is_left().await });
            }
        }
    }
    drop(crowd);
    let everybody = async { while tasks.join_next().await.is_some() {} };
    let in_time = timeout_at(began + plan.deadline, everybody).await.is_ok();
    tasks.shutdown().await;
    let mut attempts = Vec::with_capacity(plan.attempts as usize);
    while let Ok(attempt) = told.try_recv() {
        attempts.push(attempt);
    }
    // Who is missing was cut off, or died.
    let missing = plan.attempts as usize - attempts.len();
    let why = || if in_time { RaceError::Panicked } else { RaceError::Deadline };
    attempts.extend((0..missing).map(|_| Attempt { began, took: began.elapsed(), outcome: Err(why()) }));
    attempts
}

struct Crowd {
    plan: Plan,
    seller: Arc<dyn Sell>,
    tell: mpsc::Sender<Attempt>,
    next: AtomicU32,
}

impl Crowd {
    async fn attempt(&self, number: u32) {
        let began = Instant::now();
        let outcome = self.seller.attempt(self.plan.buyer(number)).await;
        let attempt = Attempt { began, took: began.elapsed(), outcome };
        // There is room for all of them.
        let _ = self.tell.try_send(attempt);
    }

    async fn attempt_until_none_is_left(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.plan.attempts {
                break;
            }
            self.attempt(number).await;
        }
    }
}
