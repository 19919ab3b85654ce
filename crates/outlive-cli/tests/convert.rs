//! Recordings as tables and pictures.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::*;
use outlive::Deadline;
use outlive::msg::{Header, Image, ImageHeader, PixelFormat, Pose, Vector3};
use outlive_record::{RecordOptions, Recorder, Recording, Selection};
use png::{BitDepth, ColorType};

/// A pose, a text and images of each format, in a file.
fn recorded(home: &Home) -> PathBuf {
    let path = home.root().with_extension("mcap");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let pose = node.topic::<Pose>("/arm/pose").unwrap().publisher().unwrap();
    let text = node.msgpack::<BTreeMap<String, String>>("/text").unwrap().publisher().unwrap();
    let images = node.topic::<Image>("/camera").unwrap().depth(16).publisher().unwrap();
    let mut recorder =
        Recorder::start(&node, Selection::all(), &path, RecordOptions::default()).unwrap();
    let position = Vector3 { x: 0.5, y: -2.0, z: 1e-9 };
    let header = Header { frame_id: outlive::msg::Text::cut("map"), stamp_ns: 7 };
    pose.publish(&Pose { header, position, ..Pose::default() }).unwrap();
    pose.publish(&Pose::default()).unwrap();
    text.publish_value(&BTreeMap::from([("say".to_owned(), "a, \"b\"".to_owned())])).unwrap();
    let image = |format, width, row_bytes, pixels: &[u8]| {
        let height = (pixels.len() as u32).checked_div(row_bytes).unwrap_or(0);
        let head = ImageHeader { header, width, height, row_bytes, format, reserved: [0; 2] };
        images.publish_headed(head, pixels).unwrap();
    };
    // Two pixels a row, and a gap of a byte behind each.
    image(PixelFormat::RGB8, 2, 7, &[1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12, 0]);
    image(PixelFormat::BGR8, 2, 6, &[1, 2, 3, 4, 5, 6]);
    image(PixelFormat::BGRA8, 1, 4, &[1, 2, 3, 4]);
    image(PixelFormat::MONO16, 2, 4, &[1, 2, 3, 4]);
    let depths = [1.2345f32, f32::NAN, -1.0, 1e6].map(f32::to_le_bytes).concat();
    image(PixelFormat::DEPTH_M32, 4, 16, &depths);
    image(PixelFormat::YUYV, 2, 4, &[76, 85, 255, 255]);
    image(PixelFormat::JPEG, 0, 0, b"\xff\xd8 any file");
    image(PixelFormat(77), 1, 1, &[1]);
    while recorder.progress().messages < 11 {
        recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
    }
    recorder.finish().unwrap();
    path
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().map(String::from).collect()
}

fn picture(path: &Path) -> (ColorType, BitDepth, Vec<u8>) {
    let file = std::io::BufReader::new(fs::File::open(path).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut data = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut data).unwrap();
    data.truncate(info.buffer_size());
    (info.color_type, info.bit_depth, data)
}

#[test]
fn messages_become_tables_and_images_pictures() {
    let home = Home::new("convert");
    let file = recorded(&home);
    let dir = file.with_extension("");
    // The directory of the domains is there.
    let out = home.root().with_file_name("out");
    let said = home.run(&format!("convert {} --output {}", file.display(), out.display()));
    let told = said.expect(DONE).err;
    assert!(told.contains("11 messages of 3 topics, 7 pictures"), "{told}");

    let pose = lines(&out.join("arm/pose.csv"));
    let head = "log_time_ns,publish_time_ns,publisher,seq,bytes,header.stamp_ns,header.frame_id,\
                position.x,position.y,position.z,orientation.x,orientation.y,orientation.z,\
                orientation.w";
    assert_eq!(pose[0], head);
    let message = Recording::open(&file).unwrap().messages().unwrap().map(Result::unwrap);
    let first = message.into_iter().find(|m| m.channel.topic == "/arm/pose").unwrap();
    let publisher = &first.channel.metadata["outlive.publisher"];
    let (log, publish) = (first.log_time, first.publish_time);
    let row = format!("{log},{publish},{publisher},0,96,7,map,0.5,-2.0,1e-9,0.0,0.0,0.0,0.0");
    assert_eq!(pose[1], row);
    assert_eq!(pose.len(), 3);
    let text = lines(&out.join("text.csv"));
    assert!(text[0].ends_with(",bytes,say") && text[1].ends_with(r#","a, ""b""""#), "{text:?}");

    let images = lines(&out.join("camera.csv"));
    assert!(
        images[0].ends_with("height,row_bytes,format,reserved[0],reserved[1],file"),
        "{images:?}"
    );
    let files: Vec<_> = images[1..].iter().map(|l| l.rsplit(',').next().unwrap()).collect();
    let last = ["camera/000005.png", "camera/000006.jpg", ""];
    assert_eq!((files[0], &files[5..]), ("camera/000000.png", &last[..]));
    let camera = |n| picture(&out.join(format!("camera/{n:06}.png")));
    let (rgb, rgba, grey) = (ColorType::Rgb, ColorType::Rgba, ColorType::Grayscale);
    let (eight, sixteen) = (BitDepth::Eight, BitDepth::Sixteen);
    assert_eq!(camera(0), (rgb, eight, (1..=12).collect()));
    assert_eq!(camera(1), (rgb, eight, vec![3, 2, 1, 6, 5, 4]));
    assert_eq!(camera(2), (rgba, eight, vec![3, 2, 1, 4]));
    assert_eq!(camera(3), (grey, sixteen, vec![2, 1, 4, 3]));
    let mm = [1235u16, 0, 0, 65535].map(u16::to_be_bytes).concat();
    assert_eq!(camera(4), (grey, sixteen, mm));
    let (_, _, red) = camera(5);
    assert!(red[0] > 250 && red[1] < 5 && red[2] < 5, "{red:?}");
    assert_eq!(fs::read(out.join("camera/000006.jpg")).unwrap(), b"\xff\xd8 any file");
    assert!(!dir.join("camera").exists());
}

#[test]
fn what_cannot_be_converted_says_why() {
    let home = Home::new("convert-wrong");
    let file = recorded(&home);
    let out = home.root().with_file_name("out");
    let convert = format!("convert {} --output {}", file.display(), out.display());
    let none = home.run(&format!("{convert} --images mp4 --ffmpeg no-such-program"));
    let told = none.expect(FAILED).err;
    assert!(told.contains("MP4 needs the program no-such-program"), "{told}");
    assert!(!out.exists(), "nothing was begun");
    home.run(&format!("{convert} --topic /none")).expect(NOT_FOUND);
    home.run(&format!("{convert} --topic /arm/* --images none")).expect(DONE);
    assert!(out.join("arm/pose.csv").exists() && !out.join("camera.csv").exists());
    let again = home.run(&convert).expect(FAILED).err;
    assert!(again.contains("is not empty"), "{again}");
    home.run(&format!("{convert} --overwrite")).expect(DONE);
}

/// It was a success: `convert run.mcap && rm run.mcap` removed what was not converted.
#[test]
fn a_signal_before_the_end_is_a_failure_that_says_how_much_is_written() {
    let home = Home::new("convert-stop");
    let node = outlive::Node::builder().root(home.root()).open().unwrap();
    let images = node.topic::<Image>("/camera").unwrap().publisher().unwrap();
    let path = home.root().with_extension("mcap");
    let mut recorder =
        Recorder::start(&node, Selection::all(), &path, RecordOptions::default()).unwrap();
    let (format, width, height, row_bytes) = (PixelFormat::RGB8, 300, 300, 900);
    let header = Header { frame_id: outlive::msg::Text::cut("map"), stamp_ns: 7 };
    let head = ImageHeader { header, width, height, row_bytes, format, reserved: [0; 2] };
    // More than a pipe takes.
    let pixels = vec![7; 900 * 300];
    for n in 1..=3 {
        images.publish_headed(head, &pixels).unwrap();
        while recorder.progress().messages < n {
            recorder.step(Deadline::after(Duration::from_secs(1))).unwrap();
        }
    }
    recorder.finish().unwrap();
    // It reads the first image after the signal.
    let ffmpeg = home.root().with_file_name("ffmpeg");
    let program = "#!/bin/sh\n[ \"$1\" = -version ] && exit 0\nkill -INT $PPID\ncat >/dev/null\n";
    fs::write(&ffmpeg, program).unwrap();
    fs::set_permissions(&ffmpeg, PermissionsExt::from_mode(0o755)).unwrap();
    let out = home.root().with_file_name("out");
    let convert = format!(
        "convert {} --output {} --images mp4 --ffmpeg {}",
        path.display(),
        out.display(),
        ffmpeg.display()
    );
    let told = home.run(&convert).expect(FAILED).err;
    assert!(told.contains("stopped after 1 of 3 messages"), "{told}");
    assert_eq!(lines(&out.join("camera.csv")).len(), 2, "head and row");
}
