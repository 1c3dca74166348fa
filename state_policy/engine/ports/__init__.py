# SPDX-License-Identifier: Apache-2.0
"""What the outside has to offer: protocols only, no behaviour."""
