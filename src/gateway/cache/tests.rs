//! On paused time: what is kept until when, and who waits for whom.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use super::{
    super::{Body, BoxError, Route, Sharing, body},
    *,
};

const PATIENCE: Duration = Duration::from_secs(5);

fn wish_with(target: &str, line: (&str, &str)) -> Wish {
    let request = Request::get(target).header("host", "a").header(line.0, line.1).body(()).unwrap();
    let route = Route {
        room: "main".parse().unwrap(),
        visitor: None,
        session_expires: None,
        drop_authorization: false,
        sharing: Some(Sharing::Everyone),
    };
    Wish::of(&mut request.into_parts().0, &route, false).unwrap()
}

fn wish(target: &str) -> Wish {
    wish_with(target, ("accept", "*/*"))
}

fn answer(control: &str, text: &str) -> Response<Body> {
    Response::builder().header("cache-control", control).body(body::full(text.to_owned())).unwrap()
}

/// What somebody who wants it is given from memory; `ask` or `pass` where they have to go.
async fn given(cache: &Cache, wish: &Wish) -> String {
    match cache.advise(wish, PATIENCE).await.unwrap() {
        Advice::Serve(answer) => text(answer.to(wish)).await,
        Advice::Ask(_) => "ask".to_owned(),
        Advice::Pass => "pass".to_owned(),
    }
}

async fn text(answer: Response<Body>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn lead(cache: &Cache, wish: &Wish) -> Lead {
    match cache.advise(wish, PATIENCE).await.unwrap() {
        Advice::Ask(lead) => lead,
        other => panic!("{other:?}"),
    }
}

async fn keep(cache: &Cache, wish: &Wish, control: &str, said: &str) {
    lead(cache, wish).await.land(wish, Ok(answer(control, said)), PATIENCE).await.unwrap();
}

async fn pass(seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_given_until_it_is_out_of_date_and_tells_its_age() {
    let (cache, wish) = (Cache::new(1 << 20), wish("/event"));
    keep(&cache, &wish, "max-age=60", "one").await;
    pass(59).await;
    assert_eq!(given(&cache, &wish).await, "one");
    let Advice::Serve(kept) = cache.advise(&wish, PATIENCE).await.unwrap() else { panic!("not kept") };
    assert_eq!(kept.to(&wish).headers()["age"], "59");
    pass(1).await;
    assert_eq!(given(&cache, &wish).await, "ask");
}

#[tokio::test(start_paused = true)]
async fn one_asks_anew_while_the_others_get_the_old_one_and_gets_it_too_if_the_origin_fails() {
    let (cache, wish) = (Cache::new(1 << 20), wish("/event"));
    keep(&cache, &wish, "max-age=10, stale-while-revalidate=10, stale-if-error=30", "old").await;
    pass(15).await;
    let asks = lead(&cache, &wish).await;
    assert_eq!(given(&cache, &wish).await, "old");
    drop(asks);
    let asks = lead(&cache, &wish).await;
    let Served::Kept(old) = asks.land(&wish, Err(GatewayError::OriginTimeout), PATIENCE).await.unwrap() else {
        panic!("the origin said nothing")
    };
    assert_eq!(text(old).await, "old");
    pass(20).await;
    let mut failure = answer("max-age=9", "trouble");
    *failure.status_mut() = http::StatusCode::BAD_GATEWAY;
    let Served::Kept(old) = lead(&cache, &wish).await.land(&wish, Ok(failure), PATIENCE).await.unwrap() else {
        panic!("the failure was given")
    };
    assert_eq!(text(old).await, "old");
    keep(&cache, &wish, "max-age=10", "new").await;
    assert_eq!(given(&cache, &wish).await, "new");
    pass(10).await;
    let failed = lead(&cache, &wish).await.land(&wish, Err(GatewayError::OriginTimeout), PATIENCE).await;
    assert_eq!(failed.unwrap_err(), GatewayError::OriginTimeout, "nobody allowed the old one");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_what_could_not_be_kept_and_one_tries_again_later() {
    let (cache, wish) = (Cache::new(1 << 20), wish("/basket"));
    keep(&cache, &wish, "private", "mine").await;
    assert_eq!(given(&cache, &wish).await, "pass");
    pass(1).await;
    let again = lead(&cache, &wish).await;
    assert_eq!(given(&cache, &wish).await, "pass", "and does not wait");
    again.land(&wish, Ok(answer("max-age=60", "everybody's")), PATIENCE).await.unwrap();
    assert_eq!(given(&cache, &wish).await, "everybody's");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_takes_over_or_is_told_or_gives_up() {
    let (cache, wish) = (Arc::new(Cache::new(1 << 20)), Arc::new(wish("/event")));
    let first = lead(&cache, &wish).await;
    let late = cache.advise(&wish, PATIENCE).await;
    assert_eq!(late.unwrap_err(), GatewayError::Busy);
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let (cache, wish) = (Arc::clone(&cache), Arc::clone(&wish));
            tokio::spawn(async move {
                match cache.advise(&wish, PATIENCE).await.unwrap() {
                    Advice::Ask(lead) => {
                        // Gone, like the first three who take over.
                        static GONE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
                        if GONE.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 3 {
                            return "gone".to_owned();
                        }
                        lead.land(&wish, Ok(answer("max-age=60", "page")), PATIENCE).await.unwrap();
                        "asked".to_owned()
                    }
                    Advice::Serve(answer) => text(answer.to(&wish)).await,
                    Advice::Pass => "pass".to_owned(),
                }
            })
        })
        .collect();
    tokio::task::yield_now().await;
    drop(first);
    let mut outcomes = std::collections::BTreeMap::new();
    for one in waiting {
        *outcomes.entry(one.await.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(outcomes, [("asked".to_owned(), 1), ("gone".to_owned(), 3), ("page".to_owned(), 46)].into());
    assert!(cache.flights.is_empty(), "nothing is left of it");
}

#[tokio::test(start_paused = true)]
async fn variants_are_kept_apart_and_one_who_waited_for_another_asks_for_their_own() {
    let cache = Cache::new(1 << 20);
    let (german, french) = (wish_with("/", ("accept-language", "de")), wish_with("/", ("accept-language", "fr")));
    let first = lead(&cache, &german).await;
    let speaks = |text: &str| {
        let mut said = answer("max-age=60", text);
        said.headers_mut().insert("vary", "accept-language".parse().unwrap());
        Ok(said)
    };
    let (second, _) = tokio::join!(lead(&cache, &french), first.land(&german, speaks("guten Tag"), PATIENCE));
    assert_eq!(given(&cache, &german).await, "guten Tag");
    second.land(&french, speaks("bonjour"), PATIENCE).await.unwrap();
    assert_eq!([given(&cache, &german).await, given(&cache, &french).await], ["guten Tag", "bonjour"]);
}

/// A body in pieces, each a while after the one before.
fn in_pieces(pieces: Vec<Bytes>, pause: Duration) -> Body {
    let pieces = futures_util::stream::unfold(pieces.into_iter(), move |mut pieces| async move {
        tokio::time::sleep(pause).await;
        let piece = Frame::data(pieces.next()?);
        Some((Ok::<_, BoxError>(piece), pieces))
    });
    StreamBody::new(Box::pin(pieces)).boxed_unsync()
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_or_too_slow_goes_through_whole_and_is_not_kept() {
    let cache = Cache::new(1 << 20);
    let large = "x".repeat((1 << 20) / 16 + 1);
    let pieces = large.as_bytes().chunks(1_000).map(Bytes::copy_from_slice).collect();
    let slow = (0..5).map(|number| Bytes::from(format!("{number};"))).collect();
    for (target, body, whole, took) in [
        ("/large", body::full(large.clone()), large.as_str(), Duration::ZERO),
        ("/pieces", in_pieces(pieces, Duration::ZERO), &large, Duration::ZERO),
        // Nobody waits longer for the rest.
        ("/slow", in_pieces(slow, Duration::from_secs(2)), "0;1;2;3;4;", PATIENCE),
    ] {
        let wish = wish(target);
        let lead = lead(&cache, &wish).await;
        let (said, began) = (answer("max-age=60", "").map(|_| body), Instant::now());
        let Served::Asked(through) = lead.land(&wish, Ok(said), PATIENCE).await.unwrap() else { panic!("kept") };
        assert_eq!(began.elapsed().as_secs(), took.as_secs(), "{target}");
        assert_eq!(given(&cache, &wish).await, "pass", "{target}");
        assert_eq!(text(through).await, whole, "{target}");
    }
}

/// On real threads: whatever leaves when, of those who stay each is served, and one of them at most has asked after the
/// last that left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_when_some_leave_at_any_moment() {
    const CROWD: usize = 32;
    let cache = Arc::new(Cache::new(1 << 20));
    for round in 0..200 {
        let (wish, start) = (Arc::new(wish(&format!("/{round}"))), Arc::new(tokio::sync::Barrier::new(CROWD)));
        let crowd: Vec<_> = (0..CROWD)
            .map(|number| {
                let (cache, wish, start) = (Arc::clone(&cache), Arc::clone(&wish), Arc::clone(&start));
                tokio::spawn(async move {
                    start.wait().await;
                    match cache.advise(&wish, Duration::from_mins(1)).await.unwrap() {
                        // Some leave as soon as it is their turn, some after a while.
                        Advice::Ask(_) if (number + round) % 3 == 0 => "left",
                        Advice::Ask(lead) => {
                            tokio::task::yield_now().await;
                            lead.land(&wish, Ok(answer("max-age=60", "page")), PATIENCE).await.unwrap();
                            "asked"
                        }
                        Advice::Serve(_) => "served",
                        Advice::Pass => "passed",
                    }
                })
            })
            .collect();
        let mut outcomes = Vec::new();
        for one in crowd {
            outcomes.push(one.await.unwrap());
        }
        let count = |wanted: &str| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        assert_eq!((count("asked"), count("passed")), (1, 0), "{outcomes:?}");
        assert_eq!(count("served") + count("left"), CROWD - 1);
    }
    assert!(cache.flights.is_empty());
}

#[tokio::test(start_paused = true)]
async fn however_much_is_asked_for_no_more_is_kept_than_may_be() {
    let cache = Cache::new(1 << 20);
    for number in 0..2_000 {
        let wish = wish(&format!("/event?{number}"));
        keep(&cache, &wish, if number % 2 == 0 { "max-age=60" } else { "private" }, &"x".repeat(10_000)).await;
    }
    assert!(cache.shelf.weight() <= 1 << 20, "{}", cache.shelf.weight());
    assert!(cache.flights.is_empty());
}
