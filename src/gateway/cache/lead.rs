//! The one that goes and asks for all, and what it brings back.

use std::{sync::Arc, time::Duration};

use http::{Response, StatusCode};
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::{
    super::{Body, GatewayError, body},
    Cache, Item, PASS_FOR, Shelf,
    answer::{Answer, Keepable},
    flights::{Landing, Seat},
    intake::{self, Intake},
    wish::Wish,
};

/// The right and duty to ask. Dropped before it has landed, it goes to the next who waits.
#[derive(Debug)]
pub(in super::super) struct Lead {
    shelf: Shelf,
    most_bytes: usize,
    seat: Seat,
    _permit: OwnedSemaphorePermit,
    /// To be given if the origin fails.
    spare: Option<Arc<Answer>>,
    asked_at: Instant,
}

/// An answer, and where it is from.
#[derive(Debug)]
pub(in super::super) enum Served {
    /// From memory.
    Kept(Response<Body>),
    /// From the origin: it may say something to the gateway.
    Asked(Response<Body>),
}

impl Lead {
    pub(super) fn new(cache: &Cache, seat: Seat, permit: OwnedSemaphorePermit, spare: Option<Arc<Answer>>) -> Self {
        Self {
            shelf: Arc::clone(&cache.shelf),
            most_bytes: cache.most_bytes,
            seat,
            _permit: permit,
            spare,
            asked_at: Instant::now(),
        }
    }

    /// Takes what the origin said, keeps it if that may be, and tells the others. Others wait no longer than `patience` for
    /// the rest of an answer.
    ///
    /// # Errors
    /// The origin's failure, where there is nothing older to be given instead.
    pub(in super::super) async fn land(
        self,
        wish: &Wish,
        asked: Result<Response<Body>, GatewayError>,
        patience: Duration,
    ) -> Result<Served, GatewayError> {
        let (head, body) = match asked {
            Ok(answer) if is_failure(answer.status()) && self.may_replace_error() => {
                return self.land_spare(wish, None);
            }
            Ok(answer) => answer.into_parts(),
            Err(error) => return self.land_spare(wish, Some(error)),
        };
        let Some(keepable) = Keepable::check(&head) else {
            self.land_pass();
            return Ok(Served::Asked(Response::from_parts(head, for_visitor(wish, body))));
        };
        let body = match intake::read(body, self.most_bytes, Instant::now() + patience).await {
            Intake::Whole(body) => body,
            Intake::Unfinished(body) => {
                self.land_pass();
                return Ok(Served::Asked(Response::from_parts(head, for_visitor(wish, body))));
            }
            Intake::Broken(error) => {
                let error = error.downcast_ref::<GatewayError>().copied().unwrap_or(GatewayError::OriginInvalid);
                return self.land_spare(wish, Some(error));
            }
        };
        let answer = Arc::new(Answer::new(&head, body, keepable, wish, self.asked_at));
        self.land_kept(wish, &answer);
        let mut served = answer.to(wish);
        served.headers_mut().remove(http::header::AGE);
        // What it came with, and what the origin says to the gateway, is for this once.
        for (name, value) in &head.headers {
            if name == http::header::AGE || name.as_str().starts_with("stanchion-") {
                served.headers_mut().append(name, value.clone());
            }
        }
        Ok(Served::Asked(served))
    }

    fn may_replace_error(&self) -> bool {
        self.spare.as_ref().is_some_and(|spare| spare.may_replace_error(Instant::now()))
    }

    fn land_kept(&self, wish: &Wish, answer: &Arc<Answer>) {
        let mut key = wish.key().clone();
        if !answer.varies_by().is_empty() {
            let by = wish.key_by(answer.varies_by());
            self.shelf.insert(std::mem::replace(&mut key, by), Item::Varies(answer.varies_by().into()));
        }
        self.shelf.insert(key, Item::Kept(Arc::clone(answer)));
        self.seat.land(Landing::Kept(Arc::clone(answer)));
    }

    fn land_pass(&self) {
        self.shelf.insert(self.seat.key().clone(), Item::Pass { until: Instant::now() + PASS_FOR });
        self.seat.land(Landing::Pass);
    }

    /// The origin failed: something older, if the origin allows that, or else nothing. Then the next may try.
    fn land_spare(self, wish: &Wish, error: Option<GatewayError>) -> Result<Served, GatewayError> {
        let is_origins = error.is_none_or(GatewayError::is_of_origin);
        match &self.spare {
            Some(spare) if is_origins && self.may_replace_error() => {
                self.seat.land(Landing::Kept(Arc::clone(spare)));
                Ok(Served::Kept(spare.to(wish)))
            }
            _ => Err(error.unwrap_or(GatewayError::OriginInvalid)),
        }
    }
}

/// What `stale-if-error` is for (RFC 5861 §4).
const fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// All was asked for, in the name of all; who wanted the head alone gets that.
fn for_visitor(wish: &Wish, body: Body) -> Body {
    if wish.is_head { body::empty() } else { body }
}
