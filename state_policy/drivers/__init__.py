# SPDX-License-Identifier: Apache-2.0
"""What reads facts and moves servers, a package for each cloud."""
