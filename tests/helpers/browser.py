"""A headless Chromium, and functions to inspect a page in it."""

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("selenium", reason="selenium is not installed")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from grupo.report.html.build import write_html_report

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SKIP_IF_MISSING = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no chromium or chromedriver here: `make browser`"
)
MARKS = [pytest.mark.browser, SKIP_IF_MISSING]


class Browser:
    """Headless Chromium; errors of the page's script are recorded."""

    def __init__(self, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM or ""
        for argument in (
            "headless=new",
            "no-sandbox",
            "disable-gpu",
            "disable-dev-shm-usage",
            "hide-scrollbars",
            "force-prefers-reduced-motion",  # no click on a moving element
            f"user-data-dir={folder}",
        ):
            options.add_argument(f"--{argument}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options, Service(DRIVER or ""))
        # so that elements receive focus although no window of a desktop does
        self.driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
        self.size(1280, 900)

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the screen in pixels and the preferred colour scheme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, url: str | Path) -> None:
        """Open a page and wait until it is ready."""
        self.driver.get("about:blank")
        self.driver.get(url.absolute().as_uri() if isinstance(url, Path) else url)
        self.wait(lambda: self.js("return document.documentElement.dataset.ready === 'yes'"))
        self.wait(lambda: self.all("#group h3, #group .soft, #group .problem"))

    def js(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def wait(self, condition: Callable[[], Any], seconds: float = 15) -> Any:
        """The first true result of `condition`; stale elements are retried."""
        wait = WebDriverWait(self.driver, seconds, 0.05, [StaleElementReferenceException])
        return wait.until(lambda _: condition())

    def choose(self, selector: str, value: str) -> None:
        self.one(f"{selector} option[value='{value}']").click()

    def keys(self, *keys: str) -> None:
        self.one("body").send_keys(*keys)

    def screenshot(self, file: Path, selector: str = "") -> None:
        """Save a screenshot, scrolled to an element if a selector is given."""
        if selector:
            self.js(f"document.querySelector({selector!r}).scrollIntoView({{behavior: 'instant'}})")
        self.driver.save_screenshot(str(file))

    @property
    def errors(self) -> list[str]:
        """Errors logged by pages since the last call."""
        log: Any = self.driver.get_log("browser")
        return [line["message"] for line in log if line["level"] == "SEVERE"]


@contextmanager
def browsing(folder: Path) -> Generator[Browser]:
    browser = Browser(folder)
    try:
        yield browser
    finally:
        browser.driver.quit()


def write_page(tmp_path: Path, *folders: Path) -> Path:
    """Write the report of some runs."""
    return write_html_report(folders, tmp_path / "page.html")
