//! Images of one topic as MP4, by the program ffmpeg at the other end of a pipe.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outlive::msg::{Image, ImageHeader, PixelFormat};

use crate::exit::{Code, Failure};

/// Whether there is such a program.
pub(super) fn check(ffmpeg: &str) -> Result<(), Failure> {
    let mut version = Command::new(ffmpeg);
    version.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match version.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(ffmpeg, &format!("it ended with {status}"))),
        Err(e) => Err(failed(ffmpeg, &e.to_string())),
    }
}

fn failed(ffmpeg: &str, why: &str) -> Failure {
    let message = format!(
        "MP4 needs the program {ffmpeg}, which does not run ({why}): install it, name another with \
         --ffmpeg, or use --images png"
    );
    Failure::new(Code::Failed, message)
}

/// One film, or several where the images change their form.
pub(super) struct Films {
    ffmpeg: String,
    base: PathBuf,
    rate: f64,
    current: Option<Film>,
    count: u64,
}

struct Film {
    form: (PixelFormat, u32, u32),
    path: PathBuf,
    child: Child,
}

impl Films {
    /// Films that begin with `base`, with so many images a second.
    pub(super) fn new(ffmpeg: &str, base: &Path, rate: f64) -> Self {
        Self { ffmpeg: ffmpeg.into(), base: base.into(), rate, current: None, count: 0 }
    }

    /// Appends an image; the name of the film, or `None` if the format is not known or rows are
    /// missing. `taken` are the paths, without ending, that are another's.
    pub(super) fn frame(
        &mut self,
        image: &Image,
        taken: &mut HashSet<PathBuf>,
    ) -> Result<Option<String>, Failure> {
        let header = image.header();
        let Some(form) = form(header) else { return Ok(None) };
        let whole = header.format.bytes_per_pixel().is_none()
            || header.height > 0 && image.row(header.height - 1).is_some();
        if !whole {
            return Ok(None);
        }
        let key = (header.format, header.width, header.height);
        if self.current.as_ref().is_some_and(|film| film.form != key) {
            self.end()?;
        }
        if self.current.is_none() {
            let path = self.next(taken);
            self.begin(key, &form, path)?;
        }
        let Some(film) = &mut self.current else { return Ok(None) };
        let name = film.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(pipe) = &mut film.child.stdin else { return Ok(None) };
        let written = match header.format.bytes_per_pixel() {
            None => pipe.write_all(image.pixels()),
            Some(_) => (0..header.height)
                .try_for_each(|y| pipe.write_all(image.row(y).unwrap_or_default())),
        };
        if written.is_err() {
            // It says why on standard error, and its status is an error.
            self.end()?;
        }
        Ok(Some(name))
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.end()
    }

    /// Where the next film goes. The first has the name of its topic, which is its own.
    fn next(&mut self, taken: &mut HashSet<PathBuf>) -> PathBuf {
        let mut path = self.base.as_os_str().to_owned();
        self.count += 1;
        if self.count > 1 {
            let named = |count: u64| {
                let mut path = path.clone();
                path.push(format!("_{count}"));
                path
            };
            while !taken.insert(named(self.count).into()) {
                self.count += 1;
            }
            path = named(self.count);
        }
        path.push(".mp4");
        path.into()
    }

    fn begin(
        &mut self,
        key: (PixelFormat, u32, u32),
        form: &[String],
        path: PathBuf,
    ) -> Result<(), Failure> {
        let rate = format!("{:.6}", self.rate);
        let child = Command::new(&self.ffmpeg)
            .args(["-v", "error", "-y"])
            .args(form)
            .args(["-framerate", &rate, "-i", "-", "-pix_fmt", "yuv420p"])
            // Pairs of pixels share their colour.
            .args(["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-movflags", "+faststart"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| failed(&self.ffmpeg, &e.to_string()))?;
        self.current = Some(Film { form: key, path, child });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        let Some(mut film) = self.current.take() else { return Ok(()) };
        drop(film.child.stdin.take());
        let status = film.child.wait().map_err(|e| Failure::io("wait for ffmpeg", &e))?;
        if status.success() {
            return Ok(());
        }
        let (ffmpeg, path) = (&self.ffmpeg, film.path.display());
        let message = format!("{ffmpeg} did not write {path}: it ended with {status}");
        Err(Failure::new(Code::Failed, message))
    }
}

/// What ffmpeg is told of its input.
fn form(header: &ImageHeader) -> Option<Vec<String>> {
    let raw = |name: &str| {
        let size = format!("{}x{}", header.width, header.height);
        let all = ["-f", "rawvideo", "-pixel_format", name, "-video_size", &size];
        Some(all.map(String::from).to_vec())
    };
    let files = |codec: &str| Some(["-f", "image2pipe", "-c:v", codec].map(String::from).to_vec());
    match header.format {
        PixelFormat::MONO8 => raw("gray"),
        PixelFormat::MONO16 | PixelFormat::DEPTH_MM16 => raw("gray16le"),
        PixelFormat::RGB8 => raw("rgb24"),
        PixelFormat::BGR8 => raw("bgr24"),
        PixelFormat::RGBA8 => raw("rgba"),
        PixelFormat::BGRA8 => raw("bgra"),
        PixelFormat::YUYV => raw("yuyv422"),
        PixelFormat::BAYER_RGGB8 => raw("bayer_rggb8"),
        PixelFormat::DEPTH_M32 => raw("grayf32le"),
        PixelFormat::JPEG => files("mjpeg"),
        PixelFormat::PNG => files("png"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second film of one topic was written over the running one of the other.
    #[test]
    fn no_film_has_the_name_of_another_topic() {
        let mut taken = HashSet::from(["d/camera", "d/camera_2"].map(PathBuf::from));
        let mut names = Vec::new();
        for base in ["d/camera", "d/camera_2"] {
            let mut films = Films::new("ffmpeg", Path::new(base), 30.0);
            names.extend([films.next(&mut taken), films.next(&mut taken)]);
        }
        let wanted = ["camera", "camera_3", "camera_2", "camera_2_2"];
        assert_eq!(names, wanted.map(|name| PathBuf::from(format!("d/{name}.mp4"))));
        assert!(taken.contains(Path::new("d/camera_3")), "no later topic has it either");
    }
}
