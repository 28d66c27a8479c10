//! A forked child that logs with the ids of its parent: in its own queue they are invalid.

use crate::line;

use std::time::Duration;

use line::{DEADLINE, begin, file_sink, in_child, log, route_to, sum};
use logspool::pipeline::{self, Options, Push, Refusal, Room, Waiter};
use logspool_record::definition::{RouteDefinition, SiteDefinition, Target};
use logspool_record::format::{FormatSpec, Style};
use logspool_record::{Head, tag};

fn refused_for_stale_ids() -> u64 {
    pipeline::snapshot().map_or(0, |snapshot| sum(snapshot.refused[Refusal::StaleIds as usize]))
}

fn push(site: u32, route: u32) -> Room {
    let head = Head { len: 0, site, route, level: 20, flags: 0, ticks: 0 };
    let mut waited = Duration::ZERO;
    loop {
        // SAFETY: `push` reserves the one byte.
        let pushed = pipeline::push(head, 1, |place| unsafe { place.write(tag::NONE) });
        if pushed == Push::Accepted {
            return Room::Retry;
        }
        match pipeline::make_room(20, 1, Waiter::Thread, &mut waited) {
            Room::Retry => {}
            refused => return refused,
        }
    }
}

#[test]
fn a_record_with_the_ids_of_the_parent_is_refused_and_counted() {
    begin(Options::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let sink = file_sink(&path);
    let route = route_to("a", sink);
    let site = SiteDefinition { file: "a.rs".into(), line: 1, function: "a".into(), ..SiteDefinition::default() };
    let site = pipeline::define_site(&site).unwrap();
    assert!(log(route, 20, "of the parent"));

    in_child(|| {
        // First by the thread that has a lane of the parent, then by a thread without a lane, then by both with a lane
        // of the child.
        assert!(!log(route, 20, "lost"));
        std::thread::scope(|scope| scope.spawn(|| assert!(!log(route, 20, "lost"))).join().unwrap());
        assert!(!log(route, 40, "lost"));
        assert_eq!(3, refused_for_stale_ids());

        // A sink id of the parent is invalid here, so no route can use it.
        let format = pipeline::define_format(&FormatSpec::text(Style::Percent, "%(message)s")).unwrap();
        let targets = vec![Target { sink, format, min_level: 0 }];
        assert_eq!(None, pipeline::define_route(&RouteDefinition { logger: "a".into(), targets }));

        let own = route_to("a", file_sink(&path));
        assert_eq!(Room::Refused(Refusal::StaleIds), push(site, own), "a site of the parent's");
        assert!(!log(route, 20, "lost") && log(own, 20, "of the child") && !log(route, 20, "lost"));
        assert_eq!(6, refused_for_stale_ids());
        in_child(|| {
            assert!(!log(route, 20, "lost") && !log(own, 20, "lost"));
            assert!(log(route_to("a", file_sink(&path)), 20, "of the grandchild"));
            assert_eq!(2, refused_for_stale_ids());
        });
    });

    assert!(log(route, 20, "of the parent again"));
    assert!(pipeline::flush(None, Some(DEADLINE)));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(["of the child", "of the grandchild", "of the parent", "of the parent again"], lines.as_slice());
    assert_eq!(0, refused_for_stale_ids());
}
